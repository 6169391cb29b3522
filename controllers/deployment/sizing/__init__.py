"""How large each ReplicaSet of a Deployment is to be: the limits, what there may be already, and the three ways."""
