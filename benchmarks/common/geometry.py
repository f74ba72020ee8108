"""Made geometry."""
import math


def jagged(a, b, depth, share, numbers):
    """A line from a to b in 2 ** depth pieces, without b: the middle of each is moved by up to this share of its length."""
    if depth == 0:
        return [a]
    reach = math.dist(a, b) * share
    middle = ((a[0] + b[0]) / 2 + numbers.uniform(-reach, reach), (a[1] + b[1]) / 2 + numbers.uniform(-reach, reach))
    return jagged(a, middle, depth - 1, share, numbers) + jagged(middle, b, depth - 1, share, numbers)
