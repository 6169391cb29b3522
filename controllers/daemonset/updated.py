"""Which pods of a DaemonSet were made from its present template.

Upstream: `pkg/controller/daemon/util/daemonset_util.go` (IsPodUpdated).
"""

from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.model import Pod

GENERATION_LABEL = "pod-template-generation"


def is_updated(pod: Pod, revision: str, template_generation: int | None) -> bool:
    """Whether the pod bears the hash label of the current revision, or the number of the current template.

    The number is that of an annotation which older API servers count up, None without it; pods made before there were
    hash labels bear nothing else. An empty `revision` is nobody's.
    """
    labels = pod.labels
    if revision and labels.get(HASH_LABEL) == revision:
        return True
    return template_generation is not None and labels.get(GENERATION_LABEL) == str(template_generation)
