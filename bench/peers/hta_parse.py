"""Parse a trace into a frame with HolisticTraceAnalysis; no analysis."""

import argparse

from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("trace")
arguments = parser.parse_args()

_, frame, _ = parse_trace_dataframe(arguments.trace, ParserConfig.get_default_cfg())
print(len(frame), "rows")
