"""The clusters that the tests share."""

import pytest
import spark_cluster as spark
from gateway import Gateway
from lakes import ROOT, unlike
from undisturbed import Undisturbed


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory):
    if not spark.java():
        pytest.skip("SKIPPED: no java, which Spark needs; install a JRE of version 17 or newer to run this test")
    cluster = spark.Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def alone(tracelake, shared, tmp_path_factory):
    """The demo and the traces of our own, converted by one process."""
    inputs = unlike(ROOT / "testdata" / "demo", shared / "traces" / "own")
    return Undisturbed(tracelake, inputs, tmp_path_factory.mktemp("alone") / "lake")


@pytest.fixture
def gateway(tmp_path):
    store = Gateway(tmp_path / "store")
    yield store
    store.kill()
