"""`oarlock chaos`: a seeded campaign of faults against a fleet under load, and a verdict from evidence alone.

``campaign`` runs it from the first process to the last. ``rig`` holds what is shaken, ``load`` what users do meanwhile,
``faults`` what goes wrong: a mixture of kills, or one sort of fault alone. ``record`` holds what sees all of it from
outside: the API server's audit log, a watch of our own (``journal``) and Redis's account of its commands (``monitor``).
``judge`` reads these three and imports nothing of the product.
"""
