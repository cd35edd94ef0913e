local upload = require("tarn.upload")

local DAY_MS = 86400 * 1000

--- As the engine gives it; what isn't said is 0, false or nil.
local function state(given)
    local sum = { bytes = 0, requests = 0 }
    local s = {
        pending = { count = 1, bytes = 1000, rows = 10, oldest = 7, newest = 7, age_s = 0 },
        disk = { free = 0, reserve = 0 },
        link = { up = true, metered = false },
        spent = { hour = sum, day = sum, month = sum },
        local_ms = 0,
        clock = "synced",
        tables = { "a.b" },
    }
    for group, members in pairs(given or {}) do
        if type(members) == "table" and type(s[group]) == "table" and group ~= "tables" then
            for name, value in pairs(members) do
                s[group][name] = value
            end
        else
            s[group] = members
        end
    end
    return s
end

local function at(clock)
    local hour, minute = clock:match("(%d+):(%d+)")
    return (hour * 60 + minute) * 60000 + 40 * DAY_MS
end

local NOTHING = { pending = { count = 0 } }

case("nothing is pending: each of them waits", function()
    for _, policy in ipairs({
        upload.now(),
        upload.every(5),
        upload.worth(1, 0),
        upload.window("00:00", "24:00"),
        upload.budget({ bytes = 1 }),
        upload.unmetered(),
        upload.rate("1K/s"),
        upload.tables("a.b"),
    }) do
        assert(policy(state(NOTHING)) == "wait")
        assert(upload.all(policy, upload.now())(state(NOTHING)) == "wait")
        assert(upload.any(policy, upload.now())(state(NOTHING)) == "wait")
        assert(upload.urgent(policy)(state(NOTHING)) == "wait")
        assert(upload.by_link(policy)(state(NOTHING)) == "wait")
    end
end)

case("every five minutes: what waits is never older", function()
    local policy = upload.every(5)
    for age = 0, 299 do
        assert(policy(state({ pending = { age_s = age } })).wait == 300 - age)
    end
    assert(policy(state({ pending = { age_s = 300 } })) == "now")
    assert(upload.worth(1000, 60)(state()) == "now")
    assert(upload.worth(1001, 60)(state()).wait == 3600)
end)

case("a window is open from its first second to its last, also over midnight", function()
    for _, window in ipairs({ { "01:00", "05:00" }, { "22:30", "04:15" }, { "0:00", "24:00" } }) do
        local policy = upload.window(window[1], window[2])
        local open = 0
        for minute = 0, 1439 do
            local ms = minute * 60000 + DAY_MS * 7
            local answer = policy(state({ local_ms = ms }))
            if answer == "now" then
                open = open + 1
            else
                assert(policy(state({ local_ms = ms + answer.wait * 1000 })) == "now")
                assert(policy(state({ local_ms = ms + answer.wait * 1000 - 1000 })) ~= "now")
            end
        end
        local size = (at(window[2]) - at(window[1])) // 60000 % 1440
        assert(open == (size == 0 and 1440 or size))
    end
    assert(
        upload.window("01:00", "05:00")(state({ clock = "unset", local_ms = at("2:00") })) == "wait"
    )
    for _, wrong in ipairs({ "1", "25:00", "24:01", "12:60", "noon" }) do
        assert(not pcall(upload.window, wrong, "05:00"))
    end
end)

case("a budget is what is left of it, and then the next hour, day or month", function()
    local policy = upload.budget({ bytes = 100, requests = 9 })
    local plan = policy(state({ spent = { day = { bytes = 40, requests = 8 } } }))
    assert(plan.bytes == 60 and plan.requests == 1)
    local spent = { day = { bytes = 100, requests = 0 } }
    assert(policy(state({ spent = spent, local_ms = at("23:59") })).wait == 60)
    spent = { day = { bytes = 0, requests = 9 } }
    assert(policy(state({ spent = spent, local_ms = at("12:00") })).wait == 12 * 3600)
    spent = { hour = { bytes = 5, requests = 0 } }
    local hourly = upload.budget({ bytes = 5, per = "hour" })
    assert(hourly(state({ spent = spent, local_ms = at("12:59") })).wait == 60)
    assert(not pcall(upload.budget, {}) and not pcall(upload.budget, { bytes = 1, per = "year" }))
end)

case("only where the link is free", function()
    local metered = { link = { metered = true } }
    assert(upload.unmetered()(state()) == "now")
    assert(upload.unmetered()(state(metered)) == "wait")
    assert(upload.unmetered()(state({ link = { up = false } })) == "wait")
    local policy = upload.by_link(upload.every(60))
    assert(policy(state()) == "now" and policy(state(metered)).wait == 3600)
    assert(policy(state({ link = { up = false } })) == "wait")
end)

case("tables keep their order, and what isn't pending is left out", function()
    local plan = upload.tables("c.c", "a.a", "x.x")(state({ tables = { "a.a", "b.b", "c.c" } }))
    assert(table.concat(plan.tables, " ") == "c.c a.a")
end)

case("all: the tightest limit of each kind, or who waits longest", function()
    local rates = upload.all(upload.rate("1M/s"), upload.rate("512 kb/s"), upload.tables("a.b"))
    local plan =
        upload.all(rates, upload.budget({ bytes = 10 }), upload.budget({ bytes = 20 }))(state())
    assert(plan.rate == "512 kb/s" and plan.bytes == 10 and plan.tables[1] == "a.b")
    local late = upload.all(upload.every(1), upload.every(5), upload.now())
    assert(late(state()).wait == 300)
    assert(
        upload.all(upload.every(1), upload.unmetered())(state({ link = { metered = true } }))
            == "wait"
    )
    assert(upload.all(upload.now(), upload.now())(state()) == "now")
    assert(upload.any(upload.every(5), upload.every(1))(state()).wait == 60)
    assert(upload.any(upload.every(5), upload.rate("1K/s"))(state()).rate == "1K/s")
end)

case("a disk that fills up doesn't wait, where there is a link", function()
    local policy = upload.urgent(upload.every(5))
    local full = { free = 199, reserve = 100 }
    assert(policy(state({ disk = full })) == "now")
    assert(policy(state({ disk = { free = 200, reserve = 100 } })).wait == 300)
    assert(policy(state({ disk = full, link = { up = false } })).wait == 300)
end)

case("a month of a policy: windows and budgets hold, and all is sent in the end", function()
    local BUDGET, FILE = 50000, 4000
    local policy = upload.all(upload.window("22:00", "05:00"), upload.budget({ bytes = BUDGET }))
    local waiting, sent, day, spent = 0, 0, -1, 0
    for minute = 0, 40 * 1440 do
        local ms = minute * 60000
        if ms // DAY_MS ~= day then
            day, spent = ms // DAY_MS, 0
        end
        waiting = waiting + (minute < 30 * 1440 and math.random(0, 40) or 0)
        local answer = policy(state({
            pending = { count = waiting > 0 and 1 or 0, bytes = waiting },
            spent = { day = { bytes = spent, requests = 0 } },
            local_ms = ms,
        }))
        if answer ~= "wait" and not answer.wait then
            local hour = ms // 3600000 % 24
            assert(hour >= 22 or hour < 5)
            local files = math.min(waiting, (answer.bytes // FILE + 1) * FILE)
            waiting, sent, spent = waiting - files, sent + files, spent + files
            assert(spent <= BUDGET + FILE)
        end
    end
    assert(waiting == 0 and sent > 500000)
end)
