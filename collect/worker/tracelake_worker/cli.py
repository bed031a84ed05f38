"""python -m tracelake_worker: run, list, describe, probe, download, check."""

import argparse
import signal
import sys

from . import errors, job, registry
from .events import Events


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        raise errors.bad_request(f"{self.prog}: {message}")


def parser():
    top = _Parser(prog="tracelake_worker", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, parser_class=_Parser)

    def command(name, run, help_text, with_job=False):
        sub = commands.add_parser(name, help=help_text, description=help_text)
        sub.set_defaults(run=run)
        if with_job:
            sub.add_argument("--job", required=True, metavar="FILE", help="what to do, as JSON")
        return sub

    command("run", _run, "run one tracer on one model", with_job=True)
    listing = command("list", _list, "list the tracers")
    describing = command("describe", _describe, "describe one tracer")
    describing.add_argument("name")
    for sub in (listing, describing):
        sub.add_argument("--tracer-path", action="append", default=[], metavar="FILE_OR_PACKAGE", help="more tracers")
    probing = command("probe", _probe, "say what is installed")
    probing.add_argument("--vllm-architectures", action="store_true", help="ask vLLM which architectures it supports")
    probing.add_argument("--unused", action="append", default=[], metavar="LIBRARY", help="do not import this one")
    command("download", _download, "fetch one model from the hub", with_job=True)
    command("check", _check, "load the configuration and the tokenizer of a model", with_job=True)
    return top


def main(argv=None):
    try:
        events = Events()
    except (OSError, ValueError) as error:
        print(f"tracelake_worker: the descriptor that TRACELAKE_EVENTS_FD names is not open: {error}", file=sys.stderr)
        return 1
    try:
        arguments = parser().parse_args(argv)
    except errors.WorkerError as error:
        print(error, file=sys.stderr)
        events.emit("result", ok=False, error=errors.describe(error))
        return 2
    # A supervisor that ends the run wants the interpreter to unwind.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        answer = arguments.run(arguments, events)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        events.stop_heartbeat()
        described = errors.describe(error, getattr(error, "worker_phase", arguments.command))
        print(described["traceback"], file=sys.stderr)
        events.emit("result", ok=False, error=described)
        return 1
    events.stop_heartbeat()
    return 0 if events.emit("result", ok=True, **answer) else 1


def _terminated(_number, _frame):
    raise SystemExit(143)


def _job(arguments, events):
    found = job.parse(job.read(arguments.job), arguments.job)
    events.start_heartbeat(found.heartbeat_seconds)
    return found


def _run(arguments, events):
    from . import runner

    return runner.run(_job(arguments, events), events)


def _list(arguments, _events):
    found = registry.load(arguments.tracer_path)
    return {
        "tracers": [registry.describe(cls, found.sources[name]) for name, cls in found.tracers.items()],
        "errors": found.errors,
    }


def _describe(arguments, _events):
    found = registry.load(arguments.tracer_path)
    cls = found.get(arguments.name)
    columns = {t.name: [vars(c) for c in t.columns] for t in cls.table_objects()}
    return {"tracer": registry.describe(cls, found.sources[cls.name]), "columns": columns}


def _probe(arguments, _events):
    from . import probe

    return probe.probe(arguments.vllm_architectures, arguments.unused)


def _download(arguments, events):
    from . import hub

    return hub.download(_job(arguments, events), events)


def _check(arguments, events):
    from . import check

    return check.check(_job(arguments, events))
