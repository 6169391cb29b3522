"""The judge: evidence in, findings out. Nothing here imports the product."""
