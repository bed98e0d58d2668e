"""A database that breaks its word, to see that the measurement notices."""

from fleetcast.bench.drivers.sqlite import Sqlite, SqliteEngine, SqliteSession

FORGOTTEN = 4


class Forgetful(Sqlite):
    """Acknowledges batches that it has not stored."""

    module = __name__


class ForgetfulEngine(SqliteEngine):
    def session(self):
        return ForgetfulSession(self.connection(), self._tables, self._writes)


class ForgetfulSession(SqliteSession):
    """Forgets one batch in four, the first of a connection too, and rounds a value when asked."""

    count = 0

    def write(self, batch):
        if self.count % FORGOTTEN:
            super().write(batch)
        self.count += 1

    def window(self, measurement, entities, start, end):
        found = super().window(measurement, entities, start, end)
        for rows in found.values():
            for fields in rows.values():
                if "fuel_consumption" in fields:
                    fields["fuel_consumption"] = float(round(fields["fuel_consumption"]))
        return found


engine = ForgetfulEngine
