"""`oarlock queue stats`, `parked`, `requeue`, `explain`: look into a keyed queue of `oarlock.queue`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import wraps
from typing import Any

import click
from redis.exceptions import ResponseError

from oarlock.cli.options.options import output_option, state_dir_option, together
from oarlock.cli.options.redis_options import open_redis, redis_option, redis_source
from oarlock.cli.problems import InputProblem
from oarlock.cli.tables import show, show_json
from oarlock.queue import NotAQueue, QueueFull, QueueUnreachable
from oarlock.queue.explain import explain as sentences
from oarlock.queue.keys import NAME
from oarlock.queue.redis_steps import RedisSteps

PARKED_MAX = 1_000


@contextmanager
def opened(redis_url: str | None, state_dir: Any, name: str) -> Iterator[RedisSteps]:
    """The queue for one command. Raises InputProblem with one line, also while it is used."""
    if not NAME.fullmatch(name):
        raise InputProblem(f"--queue {name!r}: a name has letters, digits, '_', '.' and '-', at most 100")
    source = redis_source(redis_url, state_dir)
    client = open_redis(source, shard=name)
    try:
        yield RedisSteps(client, name)
    except (QueueUnreachable, QueueFull, NotAQueue, ResponseError) as error:
        raise InputProblem(f"{source.given_by or 'Redis'}: the Redis at {source.place}: {error}") from None
    finally:
        client.close()


def queue_options(command: Callable[..., Any]) -> Any:
    """--queue, --redis and --state-dir, which become the argument ``steps``."""

    @wraps(command)
    def with_steps(queue_name: str, redis_url: str | None, state_dir: Any, **given: Any) -> Any:
        with opened(redis_url, state_dir, queue_name) as steps:
            return command(steps=steps, **given)

    named = click.option("--queue", "queue_name", metavar="NAME", required=True, help="The name given to KeyedQueue.")
    return together(named, redis_option, state_dir_option)(with_steps)


@click.command(
    epilog="\b\nExamples:\n  oarlock queue stats --queue invoices --redis redis://localhost:6379/0\n"
    "  oarlock queue stats --queue invoices -o json | jq .oldest_age_ms"
)
@queue_options
@output_option
def stats(steps: RedisSteps, output: str) -> None:
    """How many keys are in which state.

    \b
    JSON: {queued, running, delayed, parked, failing, groups, consumers, oldest_age_ms}
    """
    facts = asdict(steps.stats())
    if output == "json":
        show_json(facts)
    else:
        headings = {name: name.upper() for name in facts} | {"oldest_age_ms": "OLDEST"}
        show([facts], headings, output)


@click.command(
    epilog="\b\nExamples:\n  oarlock queue parked --queue invoices\n"
    "  oarlock queue parked --queue invoices -o json | jq -r '.[].error'"
)
@queue_options
@output_option
def parked(steps: RedisSteps, output: str) -> None:
    """The keys that failed too often.

    The longest parked first, at most 1,000.

    \b
    JSON: [{key, since_ms (since 1970), failures, error (the last traceback)}]
    """
    lines = [asdict(each) for each in steps.parked(PARKED_MAX)]
    rows = [{**each, "error": (each["error"].strip().splitlines() or [""])[-1]} for each in lines]
    columns = {"key": "KEY", "failures": "FAILURES", "error": "LAST ERROR"}
    show(lines if output == "json" else rows, columns, output, empty="no key is parked")


@click.command(
    epilog="\b\nExamples:\n  oarlock queue requeue customer-17 --queue invoices\n"
    "  oarlock queue requeue --all --queue invoices"
)
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--all", "every", is_flag=True, help="Every parked key.")
@queue_options
def requeue(steps: RedisSteps, keys: tuple[str, ...], every: bool) -> None:
    """Let parked keys run again, now.

    A KEY that is not parked is just added; an idle one to the group before its first "/".
    """
    if bool(keys) == every:
        raise InputProblem("requeue: name keys, or give --all for every parked one")
    count = 0
    if every:
        while found := [each.key for each in steps.parked(PARKED_MAX)]:
            count += steps.requeue(found)[0]
        click.echo(f"{count} parked keys are queued again")
        return
    idle = [key for key in keys if steps.look(key).state == "idle"]
    steps.add([(key, key.partition("/")[0] if "/" in key else "") for key in idle])
    count, _ = steps.requeue(keys)
    click.echo(f"{count} parked keys are queued again" + (f"; added: {', '.join(idle)}" if idle else ""))


@click.command(
    epilog="\b\nExamples:\n  oarlock queue explain customer-17 --queue invoices\n"
    "  oarlock queue explain customer-17 --queue invoices -o json | jq .state"
)
@click.argument("key")
@queue_options
@output_option
def explain(steps: RedisSteps, key: str, output: str) -> None:
    """Why does nothing happen to KEY?

    \b
    JSON: {key, state (idle | queued | running | running+ | parked), group, token, holder, running_ms,
    lease_left_ms, due_in_ms, parked_ms, failures, error, queued_in_group, groups, consumers}
    """
    facts = steps.look(key)
    if output == "json":
        show_json(asdict(facts))
    else:
        click.echo("\n".join(sentences(steps.name, facts)))


COMMANDS = (stats, parked, requeue, explain)
