"""`oarlock dev`: a cluster on this machine to try one's own controllers in."""
