"""Errors a person must mend: each is one line that names the input and what to do about it."""


class ConfigError(Exception):
    """A kubeconfig, credential or certificate that cannot be used. `str()` is one line without secrets."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
