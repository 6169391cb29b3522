"""Pod templates as the cache keeps them: deflated, beside the words that most templates have in common.

A template takes a quarter of its bytes so. Only creates read it, and to inflate one takes a microsecond.
"""

import zlib
from functools import lru_cache

_WORDS = (
    b'"volumes":[{"name":"","emptyDir":{}},{"configMap":{"name":"","defaultMode":420}},{"secret":{"secretName":""}}],'
    b'"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":['
    b'{"matchExpressions":[{"key":"","operator":"In","values":["","tolerations":[{"operator":"Exists","effect":'
    b'"NoSchedule"}],"nodeSelector":{"kubernetes.io/os":"linux"},"serviceAccountName":"","serviceAccount":"",'
    b'"hostNetwork":true,"initContainers":[{"command":["/bin/sh","-c","args":["--"],"envFrom":[{"configMapRef":{"name":'
    b'"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"initialDelaySeconds":10,'
    b'"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"readinessProbe":{"tcpSocket":{'
    b'"volumeMounts":[{"name":"","readOnly":true,"mountPath":"/etc/"}],"securityContext":{"runAsNonRoot":true,'
    b'"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}},"imagePullPolicy":"IfNotPresent",'
    b'"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"restartPolicy":"Always",'
    b'"terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler"}}'
    b'{"metadata":{"creationTimestamp":null,"annotations":{"prometheus.io/scrape":"true","labels":{"app":"",'
    b'"app.kubernetes.io/name":"","app.kubernetes.io/part-of":"","app.kubernetes.io/instance":"",'
    b'"app.kubernetes.io/component":"","app.kubernetes.io/version":"","pod-template-hash":""}},"spec":{"containers":['
    b'{"name":"","image":":latest","ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],'
    b'"env":[{"name":"","value":""},{"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],'
    b'"resources":{"limits":{"cpu":"100m","memory":"128Mi"},"requests":{"cpu":"10m","memory":"64Mi"}}'
)
"""What comes last is found best. Another text makes all that is stored unreadable: it comes with another protocol
(broker/keys.py).
"""

BYTES_MAX = 4_194_304
"""The API server takes no larger object."""
_RAW = -zlib.MAX_WBITS  # no header, and no checksum: readers compare a digest
_BITS_MIN, _LEVEL_MIN = 12, 5
_KEPT = 1_024


@lru_cache(maxsize=_KEPT)
def deflated(template: bytes) -> bytes:
    """Remembered, because most events of an owner change its status alone."""
    # The window covers words and template, and no more: the memory of a whole one takes four times as long to get.
    bits = min(max((len(_WORDS) + len(template)).bit_length(), _BITS_MIN), zlib.MAX_WBITS)
    packer = zlib.compressobj(wbits=-bits, memLevel=bits - _BITS_MIN + _LEVEL_MIN, zdict=_WORDS)
    return packer.compress(template) + packer.flush()


def inflated(packed: bytes) -> bytes:
    """Raises ValueError for what ``deflated`` has not made."""
    unpacker = zlib.decompressobj(wbits=_RAW, zdict=_WORDS)
    try:
        template = unpacker.decompress(packed, BYTES_MAX)
    except zlib.error as error:
        raise ValueError(f"it is not deflated: {error}") from None
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it is cut off, too long, or followed by more")
    return template
