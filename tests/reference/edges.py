"""Scenarios with models at both sides of the limits of docs/scoring.md: each of them decides a rule.

All runs are of one suite with two axes, so that their archives are small. The other suite has no runs.
"""

import math

from scenario import END, HOUR, Scenario, model, persistent, short, table, white

AXES = ("correctness", "spec")
OTHER_AXES = ("codeQuality", "efficiency", "stability", "refusal", "recovery")
FEEDS = ("combined", "coding", "reasoning", "speed", "price", "7axis")
# By model: the hours of history, and the changes of its level in points, each from so many hours before the end.
CHANGES = {
    # Limits of trends and degradations: 0.5 points.
    "slightly-less": (400, {168: -0.44}),
    "slightly-more": (400, {168: -0.57}),
    # Limits of alerts: 2 and 8 points. A lasting fall of 2 points, which ends at less than 1 point.
    "alert-1.8": (400, {24: -1.8}),
    "alert-2.2": (400, {24: -2.2}),
    "alert-7.7": (400, {24: -7.7}),
    "alert-8.4": (400, {24: -8.4}),
    "fall-1.75": (400, {40: -1.75}),
    "fall-2.4": (400, {40: -2.4}),
    "back-to-0.8": (400, {130: -5, 70: 4.2}),
    "back-to-1.25": (400, {130: -5, 70: 3.75}),
    # Falls of 4 and 9 points that last 60 hours, nearly 7 days, and longer.
    "fallen-60-hours": (400, {60: -4}),
    "fallen-7-days": (400, {162: -4}),
    "fallen-8-days": (480, {192: -9}),
    # The fall is found more than a day after it began, since its second half completes it.
    "in-two-halves": (400, {100: -1.7, 78: -1.7}),
    # Found at the 48th hour of the history. It ends by its duration in the last 24 hours, or an hour after the end.
    "early": (230, {204: -8}),
    "earlier-by-one": (215, {189: -8}),
    # Limits of incidents: 5 points, critical from 10, resolved at 2.5.
    "incident-4.6": (400, {60: -4.6}),
    "incident-5.4": (400, {60: -5.4}),
    "incident-9.4": (400, {60: -9.4}),
    "incident-10.5": (400, {60: -10.5}),
    "resolved-to-2.9": (400, {120: -7, 30: 4.1}),
    "resolved-to-2.1": (400, {120: -7, 30: 4.9}),
    # Resolved at either side of 48 hours ago.
    "resolved-44": (400, {100: -6, 44: 6}),
    "resolved-53": (400, {100: -6, 53: 6}),
    # The end of a rise is a fall if it was held for 96 hours, or if it ends below the level before.
    "rise-of-a-day": (400, {60: 6, 36: -6}),
    "rise-of-90-hours": (400, {130: 6, 40: -6}),
    "rise-of-102-hours": (400, {142: 6, 40: -6}),
    "rise-and-fall": (400, {60: 6, 36: -13}),
    "dip-of-a-day": (400, {60: -6, 36: 6}),
    "settled": (100, {50: -6}),
    # A new normal after 7 days, with an outage before it, and a further fall soon after.
    "new-normal": (560, {480: -9, 250: -6, 220: 6}),
}
# With this rise the freedom of the older day decides about the trend of the index.
PAIRS_SHIFT = 12.3
SILENT = {"new-normal": (430, 426)}


def started(name):
    suites = table(("coding", 1, AXES, FEEDS), ("others", 1, OTHER_AXES, ("tooling",)))
    return Scenario(name, END + 10 * 60, suites)


def add(made, described, age, levels, number=1, failures=0, measured=None):
    """A run this many hours before the end, of so many trials with these levels (in points) and failed ones."""
    trials = []
    for _ in range(number):
        trial = {"scores": {axis: short(level / 100, 4) for axis, level in zip(AXES, levels)}}
        if measured:
            trial["latencyMs"], trial["cost"] = measured
        trials.append(trial)
    trials += [{"failure": {"reason": "throttled"}}] * failures
    made.add(described, "coding", END - age * HOUR + 5 * 60, trials)


def edges():
    """Hourly rounds with changes just below and above each limit, and rounds of other lengths with few peers."""
    made = started("edges")
    for name, (hours, changes) in CHANGES.items():
        described = model(name, "meridian")
        for age in range(hours, 0, -1):
            level = 80 + sum(points for since, points in changes.items() if age <= since)
            first, last = SILENT.get(name, (0, 0))
            if last < age <= first:
                made.add(described, "coding", END - age * HOUR + 5 * 60, failure={"reason": "timeout"})
            else:
                add(made, described, age, level + 0.6 * made.rng.standard_normal(2))
    axes_and_lines(made)
    constant(made)
    failing(made)
    lengths(made)
    noise = persistent(made.rng, 400)
    for age in range(400, 0, -1):
        # Many points, but too much noise for an alert.
        level = 73 - 6.2 * (age <= 24) + 1.5 * noise[400 - age]
        add(made, model("unsure", "boreal"), age, (level, level))
    return made


def axes_and_lines(made):
    """Two axes with the same loss, a slow rise that counts for a month, and a slow wave."""
    for age in range(400, 0, -1):
        level = 75 - 3 * (age <= 24) + 0.6 * made.rng.standard_normal()
        add(made, model("equal-axes", "boreal"), age, (level, level))
    for age in range(40 * 24, 0, -1):
        level = 78 - 3 * (age <= 30 * 24) + 0.11 * max(0, 7 - age / 24)
        add(made, model("slow-rise", "boreal"), age, level + 0.6 * made.rng.standard_normal(2))
    for age in range(600, 0, -1):
        # Neighbouring rounds are nearly equal.
        level = 70 + 6 * math.sin(2 * math.pi * age / 230)
        add(made, model("slow-wave", "boreal"), age, level + 0.1 * white(made.rng, 2))


def constant(made):
    """Scores of exactly 50 points and a bit less, with the lowest latency and cost."""
    for name, level, measured in (("half", 50, (400, 0.002)), ("below-half", 49.99, (300, 0.001))):
        for age in range(120, 0, -1):
            add(made, model(name, "cobalt"), age, (level, level), measured=measured)


def failing(made):
    """Providers with an availability of a half, and a bit less."""
    for age in range(100, 0, -1):
        for provider, failures in (("exactly-half", 1), ("less-than-half", 1 + (age % 4 == 0))):
            add(made, model(f"{provider}-available", provider), age, 72 + made.rng.standard_normal(2), 1, failures)


def lengths(made):
    """Rounds of other lengths: with two and three models of a length, without any noise, and at irregular distances."""
    for name, every, count in (("eight-1", 8, 80), ("eight-2", 8, 75), ("twelve-1", 12, 60), ("twelve-2", 12, 50),
                               ("twelve-3", 12, 20), ("day-5", 24, 5), ("day-6", 24, 6)):
        noise = 1.5 * persistent(made.rng, count)
        for index in range(count):
            add(made, model(name, "delta"), (count - index - 1) * every + 2, (76 + noise[index], 74 + noise[index]))
    # Every 2 and 6 hours in turn: both middle distances differ.
    for index in range(100):
        age = 8 * (index // 2) + 2 * (index % 2) + 1
        add(made, model("in-turn", "delta"), age, 77 + white(made.rng, 2))
    age = 1
    while age < 600:
        if not 90 < age < 130:
            add(made, model("irregular", "delta"), age, 74 - 4 * (age < 160) + white(made.rng, 2))
        age += int(made.rng.choice((1, 1, 2, 3, 5, 7, 11)))


def pairs():
    """Two models without peers, whose days have different numbers of rounds: the index has a freedom for each day."""
    made = started("pairs")
    noise = 3 * white(made.rng, 60)
    for index in range(60):
        # A round of yesterday is missing.
        if (age := 12 * (59 - index) + 2) != 26:
            add(made, model("half-days", "meridian"), age, (76 + noise[index], 75 + noise[index]))
    noise = 1.8 * persistent(made.rng, 480)
    for age in range(480, 0, -1):
        level = 70 + PAIRS_SHIFT * (age <= 24) + noise[480 - age]
        add(made, model("hours", "boreal"), age, (level, level))
    return made
