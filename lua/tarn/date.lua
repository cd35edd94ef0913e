--- A moment as year, month, day and time of day (UTC, the Gregorian calendar, no leap seconds).
--
--     local d = tarn.date(row.ts)     -- ms since 1970; tarn.date(us, "us"), tarn.date(ns, "ns")
--     row.day = ("%04d-%02d-%02d"):format(d.year, d.month, d.day)
--
-- @module tarn.date

local UNITS = { s = 1, ms = 1000, us = 1000000, ns = 1000000000 }
local SECONDS_A_DAY = 86400
-- Days of 400 years, and from 0000-03-01 to 1970-01-01. Counted from March, a leap day is the last
-- day of its year.
local DAYS_OF_ERA, DAYS_TO_EPOCH = 146097, 719468

local function civil(days)
    days = days + DAYS_TO_EPOCH
    local era = days // DAYS_OF_ERA
    local day = days % DAYS_OF_ERA
    local year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day = day - (365 * year + year // 4 - year // 100)
    local month = (5 * day + 2) // 153
    return era * 400 + year + (month >= 10 and 1 or 0),
        month < 10 and month + 3 or month - 9,
        day - (153 * month + 2) // 5 + 1
end

--- @tparam integer ts since 1970
-- @tparam[opt="ms"] string unit s, ms, us or ns
-- @treturn table year, month, day, hour, minute, second, fraction (of a second, in the unit),
-- weekday (1 is Monday), days (since 1970)
return function(ts, unit)
    local per_second = UNITS[unit or "ms"] or error("unit is s, ms, us or ns", 2)
    local seconds = ts // per_second
    local days = seconds // SECONDS_A_DAY
    local rest = seconds % SECONDS_A_DAY
    local year, month, day = civil(days)
    return {
        year = year,
        month = month,
        day = day,
        hour = rest // 3600,
        minute = rest % 3600 // 60,
        second = rest % 60,
        fraction = ts % per_second,
        weekday = (days + 3) % 7 + 1,
        days = days,
    }
end
