# SPDX-License-Identifier: BSL-1.0
"""The days of CF's calendars, by the conversion and by the verification, against cftime: every month of the years 1 to 3000."""

import pathlib
import subprocess

import cftime

PRINT_MONTHS = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "tests" / "verify" / "print_months"


def test_every_month_of_three_thousand_years():
    lines = subprocess.run([PRINT_MONTHS], capture_output=True, text=True, check=True, timeout=600).stdout.splitlines()
    assert len(lines) == 6 * 3000 * 12
    zero = {}
    for line in lines:
        calendar, *numbers = line.split()
        year, month, first, last, days, *other = map(int, numbers)
        assert other == [first, last, days], line
        if calendar not in zero:
            zero[calendar] = cftime.datetime(1970, 1, 1, calendar=calendar).toordinal()
        begin = cftime.datetime(year, month, 1, calendar=calendar)
        after = cftime.datetime(year + month // 12, month % 12 + 1, 1, calendar=calendar)
        assert begin.toordinal() - zero[calendar] == first, line
        assert after.toordinal() - zero[calendar] == last + 1, line
        assert after.toordinal() - begin.toordinal() == days, line
