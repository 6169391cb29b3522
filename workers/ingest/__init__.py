"""From the API's lists and watches to Redis."""
