"""The clusters that the tests share."""

import pytest
import spark_cluster as spark


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory):
    if not spark.java():
        pytest.skip("SKIPPED: no java, which Spark needs; install a JRE of version 17 or newer to run this test")
    cluster = spark.Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()
