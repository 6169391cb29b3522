"""`oarlock chaos`: a seeded campaign of faults against a fleet under load, and a verdict from evidence alone.

The campaign (``campaign``, ``schedule``, ``faults``, ``load``, ``rig``) makes things go wrong, or plays one sort of
fault alone (``episodes``, ``strikes``, and what they need: ``network``, ``redis_program``, ``two_hosts``). Three
recorders keep what was seen from outside: the API server's audit log (``audit_log``), a watch of our own (``journal``)
and Redis's account of its commands (``monitor``, read by ``trace``). The checker (``checker`` and the passes beside it)
reads these three and imports nothing of the product.
"""
