"""Section "Alerts and degradations": models whose level fell."""

from dataclasses import dataclass

from .numbers import holm, published_p, published_score, t_below

WEEK = 7 * 24
ALERT_P, ALERT_POINTS, CRITICAL_POINTS = 0.001, 2, 8


@dataclass
class Alert:
    """The newest level against that a week ago, or None. Without an alert it has no severity."""

    compared: object
    p_value: float | None = None
    severity: str | None = None

    @property
    def loss(self):
        """The difference of both published levels."""
        return published_score(published_score(self.compared.before) - published_score(self.compared.now))


def falls(models, hours):
    """By model: the comparison with the level before the changes of the last hours, with the corrected p-value."""
    found = {model.id: Alert(model.levels.since(model.end - hours)) for model in models}
    corrected = holm({key: 1.0 if one.compared is None else t_below(*one.compared.t()) for key, one in found.items()})
    for key, one in found.items():
        one.p_value = corrected[key]
    return found


def alerts(models):
    found = falls(models, WEEK)
    for one in found.values():
        if one.compared is not None and published_p(one.p_value) < ALERT_P and one.loss >= ALERT_POINTS:
            one.severity = "critical" if one.loss >= CRITICAL_POINTS else "warning"
    return found
