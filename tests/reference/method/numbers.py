"""Statistics that the document names: Student's t, the Beta distribution, Holm's correction, medians, and rounding."""

import math
from functools import cache

# Distances below this are errors of floating point when a bound is rounded outwards.
NOISE_OF_FLOATS = 1e-9
# The same after the multiplication by a power of ten.
NOISE_OF_PRODUCTS = 1e-7


def mean(values):
    return math.fsum(values) / len(values)


def median(values):
    """The middle value, or the mean of both middle values."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def sample_variance(values):
    """With n - 1 in the denominator."""
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    result = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for factor in (even, odd):
            d = 1 / (1 + factor * d or tiny)
            c = 1 + factor / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            return result
    raise ArithmeticError("the continued fraction does not converge")


def beta_share(a, b, x):
    """The distribution function of Beta(a, b) at x."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    front = math.exp(logarithm)
    if x < (a + 1) / (a + b + 2):
        return front * beta_fraction(a, b, x) / a
    return 1 - front * beta_fraction(b, a, 1 - x) / b


def increasing_root(function, low, high):
    """Where an increasing function is zero, by bisection to the last digit."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return (low + high) / 2


@cache
def beta_quantile(share, a, b):
    return increasing_root(lambda x: beta_share(a, b, x) - share, 0.0, 1.0)


def t_two_sided(t, freedom):
    """The probability of a value at least as far from zero."""
    return beta_share(freedom / 2, 0.5, freedom / (freedom + t * t))


def t_below(t, freedom):
    """The probability of a value at most as large."""
    half = t_two_sided(t, freedom) / 2
    return half if t < 0 else 1 - half


@cache
def t_quantile(freedom, tail):
    """The value that is exceeded with this probability, below one half."""
    high = 1.0
    while t_two_sided(high, freedom) > 2 * tail:
        high *= 2
    return increasing_root(lambda t: 2 * tail - t_two_sided(t, freedom), 0.0, high)


def t_quantile_95(freedom):
    """The distance from zero that 95 % of the values do not exceed."""
    return t_quantile(freedom, 0.025)


def holm(values):
    """Corrected p-values by key. Those that are None are not counted, and not in the result."""
    ordered = sorted((p, key) for key, p in values.items() if p is not None)
    corrected, largest = {}, 0.0
    for place, (p, key) in enumerate(ordered):
        largest = max(largest, min(1.0, p * (len(ordered) - place)))
        corrected[key] = largest
    return corrected


def rounded(value, digits, upwards=None):
    """Multiplied by the power of ten, rounded with halves away from zero, and divided. Bounds are rounded outwards."""
    if value is None:
        return None
    scale = 10.0**digits
    if upwards is None:
        whole = half_away(value * scale)
    elif upwards:
        whole = math.ceil((value - NOISE_OF_FLOATS) * scale)
    else:
        whole = math.floor((value + NOISE_OF_FLOATS) * scale)
    return whole / scale + 0.0


def half_away(value):
    """The nearest whole number. Halves, and numbers up to 1e-7 below one, are rounded away from zero."""
    size = abs(value)
    whole = math.floor(size)
    whole += size - whole >= 0.5 - NOISE_OF_PRODUCTS
    return math.copysign(whole, value)


def within_scale(value):
    return min(100.0, max(0.0, value))


# Section "Published numbers".

LEAST_P, P_DIGITS = 1e-300, 3


def published_score(value):
    return rounded(value, 2)


def published_lower(value):
    return None if value is None else within_scale(rounded(value, 2, upwards=False))


def published_upper(value):
    return None if value is None else within_scale(rounded(value, 2, upwards=True))


def published_p(value):
    """Three significant digits, at least 1e-300."""
    if value is None:
        return None
    return max(LEAST_P, float(f"{value:.{P_DIGITS - 1}e}"))
