"""Section "Incidents": the state after a first scan, or after a scan that continues from the records of an export."""

import math
from dataclasses import dataclass

from .levels import LEAST_REACH, REACH
from .numbers import mean
from .rounds import rounds_for
from .runs import HOUR, seconds

METHOD = "5.1"
RECENT, LEAST_RECENT = 6, 2
LOW_POINTS, CRITICAL_POINTS = 2.5, 10
LONGEST_HOURS = 168
OUTAGE_HOURS, CRITICAL_HOURS = 3, 6
NOTHING_BARRED = {"degradation": (), "outage": ()}


@dataclass
class Degradation:
    opened: int
    baseline: float
    resolved: int | None = None


def is_in(degradation, begin):
    """Whether a round is between opening and resolution."""
    return degradation.opened <= begin and (degradation.resolved is None or begin < degradation.resolved)


class Scan:
    """A scan of a model's complete rounds, oldest first: of all of them, or of those from an hour on.

    A later scan begins with the degradations that are recorded. None begins in a barred range of hours. The baselines
    at some hours (`wanted`) are kept as they are known when the newest round before the hour is scanned."""

    def __init__(self, model, rounds, wanted, known=(), start=-math.inf, barred=()):
        self.rounds, self.barred = rounds, barred
        self.recent_count = rounds_for(RECENT, model, LEAST_RECENT)
        self.degradations, self.baselines = list(known), {}
        self.values = model.levels.with_outliers
        self.reach = rounds_for(REACH, model, LEAST_REACH)
        deep = [(one.deep_at, model.levels.begins[one.at], one.level) for one in model.levels.changes
                if one.deep_at is not None]
        places = {hour: sum(one.begin < hour for one in rounds) - 1 for hour in wanted}
        for place, one in enumerate(rounds):
            if one.begin >= start:
                self.step(place, [(began, level) for at, began, level in deep if place - self.reach <= at <= place])
            for hour in (hour for hour, before in places.items() if before == place):
                self.baselines[hour] = self.baseline_known(model, hour)

    def baseline_known(self, model, hour):
        """That of the degradation that the hour is in, else the level as known then, or None."""
        own = next((one for one in self.degradations if is_in(one, hour)), None)
        return own.baseline if own is not None else model.levels.level_at(hour)

    @property
    def open(self):
        newest = self.degradations[-1] if self.degradations else None
        return newest if newest and newest.resolved is None else None

    def is_in_any(self, begin):
        return any(is_in(one, begin) for one in self.degradations)

    def may_begin(self, begin):
        if self.is_in_any(begin) or any(one.opened >= begin for one in self.degradations):
            return False
        return not any(first >= begin or first <= begin < end for first, end in self.barred)

    def step(self, place, deep):
        """A fall that is deep enough with this round, or with one just before, opens a degradation, unless one is open."""
        if self.open is not None:
            first = max(0, place + 1 - self.recent_count)
            self.look_for_end(self.open, self.rounds[first:place + 1], self.values[first:place + 1])
            return
        new = next((one for one in deep if self.may_begin(one[0])), None)
        if new is not None:
            self.degradations.append(Degradation(*new))

    def look_for_end(self, one, recent, values):
        """Rules 2 and 3, with the values without their cycle."""
        if one.baseline - mean(values) <= LOW_POINTS:
            low = [at for at, value in enumerate(values) if value < one.baseline - LOW_POINTS]
            after = min(low[-1] + 1, len(recent) - 1) if low else 0
            one.resolved = max(one.opened, recent[after].begin)
        elif recent[-1].begin >= one.opened + LONGEST_HOURS:
            one.resolved = recent[-1].begin


@dataclass
class Outage:
    opened: int
    failed_hours: int
    # The third hour of the sequence.
    found: int
    resolved: int | None = None


def outages(model, barred=()):
    """Sequences of at least three hours in which every run failed; hours without runs and barred ones are skipped."""
    hours = {run.hour for run in model.runs if not any(first <= run.hour < end for first, end in barred)}
    good = {run.hour for run in model.runs if not run.failed}
    found, sequence = [], []
    for hour in [*sorted(hours | good), None]:
        if hour is not None and hour not in good:
            sequence.append(hour)
            continue
        if len(sequence) >= OUTAGE_HOURS:
            found.append(Outage(sequence[0], len(sequence), sequence[OUTAGE_HOURS - 1], hour))
        sequence = []
    return found


@dataclass
class Incident:
    """An incident in its newest state. Instants are hours."""

    id: str
    kind: str
    severity: str
    opened: int
    resolved: int | None
    baseline: float | None
    mean: float | None = None
    lowest: float | None = None
    # The version of the method that found it.
    method: str | None = METHOD


def incident_id(kind, model, opened):
    return f"{kind}-{model.id}-{opened * HOUR}"


def degradation_record(model, rounds, one):
    """A degradation in its newest state."""
    values = [each.value for each in rounds if is_in(one, each.begin)]
    level = mean([value for each, value in zip(rounds, model.levels.with_outliers) if is_in(one, each.begin)])
    severity = "critical" if one.baseline - level >= CRITICAL_POINTS else "warning"
    return Incident(incident_id("degradation", model, one.opened), "degradation", severity, one.opened, one.resolved,
                    one.baseline, level, min(values))


def outage_record(model, baselines, one):
    severity = "critical" if one.failed_hours >= CRITICAL_HOURS else "warning"
    return Incident(incident_id("outage", model, one.opened), "outage", severity, one.opened, one.resolved,
                    baselines.get(one.opened))


def rounds_of(model):
    kind = model.kinds.get("combined")
    return model.rounds(kind) if kind and model.length else []


def in_order(records):
    return sorted(records, key=lambda one: (one.opened, one.id))


def first_scan(model, barred=NOTHING_BARRED):
    """Each incident of the window in its newest state, oldest first."""
    rounds, silent = rounds_of(model), outages(model, barred["outage"])
    if not rounds:
        return in_order(outage_record(model, {}, one) for one in silent)
    scan = Scan(model, rounds, [one.opened for one in silent], barred=barred["degradation"])
    found = [degradation_record(model, rounds, one) for one in scan.degradations]
    return in_order(found + [outage_record(model, scan.baselines, one) for one in silent])


def later_scan(model, records, position, barred=NOTHING_BARRED):
    """The records of an export, continued by a scan of what is new since the position."""
    rounds, silent, by_id = rounds_of(model), outages(model, barred["outage"]), {one.id: one for one in records}
    known = [Degradation(one.opened, one.baseline, one.resolved) for one in records if one.kind == "degradation"]
    baselines = {}
    if rounds:
        # The round of the present length that contains the position.
        start = hour_of(position.get("roundAt"))
        start -= start % model.length if start > -math.inf else 0
        scan = Scan(model, rounds, [one.opened for one in silent], known, start, barred["degradation"])
        baselines = scan.baselines
        for one in scan.degradations:
            continue_degradation(model, rounds, one, by_id)
    hour_at = hour_of(position.get("hourAt"))
    for one in silent:
        made = outage_record(model, baselines, one)
        old = by_id.get(made.id)
        if old is None and one.found >= hour_at:
            by_id[made.id] = made
        elif old is not None and old.resolved is None:
            # The baseline of a recorded outage does not change.
            made.baseline, made.method = old.baseline, old.method
            by_id[made.id] = made
    return in_order(by_id.values())


def continue_degradation(model, rounds, one, by_id):
    """Replaces the record of a degradation, if it was not resolved there. Its lowest score does not rise."""
    old = by_id.get(incident_id("degradation", model, one.opened))
    if (old is None or old.resolved is None) and any(is_in(one, each.begin) for each in rounds):
        made = degradation_record(model, rounds, one)
        if old is not None:
            made.lowest, made.method = min(made.lowest, old.lowest), old.method
        by_id[made.id] = made


def hour_of(text):
    """The hour of an instant, before all others without one."""
    return -math.inf if text is None else seconds(text) // HOUR


def recorded(lines, model):
    """The newest revision of each record of a model that is not retracted."""
    newest = {}
    for line in lines:
        if line["model"] == model and line["revision"] > newest.get(line["id"], {"revision": 0})["revision"]:
            newest[line["id"]] = line
    found = []
    # "A retraction is final."
    retracted = {line["id"] for line in lines if "retractedBy" in line}
    for line in newest.values():
        if line["id"] not in retracted:
            resolved = line.get("resolvedAt")
            found.append(Incident(line["id"], line["kind"], line["severity"], seconds(line["openedAt"]) // HOUR,
                                  resolved and seconds(resolved) // HOUR, line.get("baseline"), line.get("mean"),
                                  line.get("lowest"), line.get("method")))
    return in_order(found)


def barred_ranges(lines, model):
    """By kind the hours of retracted incidents: up to the resolution, or to the retraction of one that was open."""
    found = {kind: [] for kind in NOTHING_BARRED}
    for line in lines:
        if line["model"] == model and "retractedBy" in line:
            end = seconds(line.get("resolvedAt") or line["recordedAt"])
            found[line["kind"]].append((seconds(line["openedAt"]) // HOUR, -(-end // HOUR)))
    return found


def incidents_of(models, export):
    """By model: the incidents that are published, by a first scan or by one that continues that of the export."""
    found = {}
    for model in models:
        position = export.scans.get(model.id)
        records, barred = recorded(export.incidents, model.id), barred_ranges(export.incidents, model.id)
        found[model.id] = later_scan(model, records, position, barred) if position else first_scan(model, barred)
    return found
