"""The named points of a worker's life at which a campaign kills it.

Each lies on one side of a step that others can see: before it, between the request and its answer, or after the answer
and before the worker has acted on it. What lies between two points looks the same to everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping

POINTS: Mapping[str, str] = {
    "claim-before": "before it asks for keys",
    "claim-sent": "it has asked for keys, and has read no reply: they are locked for nobody",
    "claim-read": "it has keys, and no turn has begun",
    "claim-beside": "it has taken keys beside turns that wait for the API",
    "announce-before": "a turn has decided, and nothing is announced",
    "announce-sent": "the announcement is sent, its reply is not read",
    "announce-read": "writes are announced, none is sent",
    "create-sent": "a create of a pod is sent, and has no answer",
    "create-answered": "a create is answered, and no turn has seen the answer",
    "between-waves": "a wave of a slow start is answered, the next one is not sent",
    "delete-sent": "a delete of a pod is sent, and has no answer",
    "delete-answered": "a delete is answered, and no turn has seen the answer",
    "size-sent": "a change of a ReplicaSet is sent, and has no answer",
    "size-answered": "a change of a ReplicaSet is answered, and no turn has seen the answer",
    "waiting": "its thread is about to wait for the API, with turns under way",
    "status-sent": "a status is sent, and has no answer",
    "status-answered": "a status is answered, and its turn is not ended",
    "finish-before": "turns are over, and nothing of it is told",
    "finish-sent": "the end of turns is sent, its reply is not read",
    "finish-read": "turns are ended, and the worker has not gone on",
}
"""Name -> where the worker is then."""
NUMBER = {name: number for number, name in enumerate(POINTS)}
