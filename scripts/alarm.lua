--- The life of an alarm: off, on, acknowledged, cleared. Nothing else.
--
-- Panels, PLCs and people send what they think an alarm's state is. Only these steps are taken:
--
--     off -> on -> acknowledged -> cleared -> on ...        on -> cleared, when nobody looked
--
-- An illegal step is an error: its row goes to the dead letters with the reason, the alarm stays as
-- it was. A repetition is no step. `raised` counts how often it went on, `acked_by` says who
-- looked.
--
--     tarn create plant.alarms --field 'alarm STRING' --field 'state STRING' \
--         --field 'ts TIMESTAMP(3)' --field 'who STRING' --field 'raised BIGINT' \
--         --field 'acked_by STRING' --primary-key alarm --option bucket=1 \
--         --option changelog-producer=input --option tarn.script=scripts/alarm.lua

local STEPS = {
    off = { on = true },
    on = { acknowledged = true, cleared = true },
    acknowledged = { cleared = true },
    cleared = { on = true, off = true },
}

local function check(from, to)
    if not STEPS[to] then
        error("there is no state " .. tostring(to), 0)
    end
    if from ~= to and not STEPS[from][to] then
        error(("%s can't become %s"):format(from, to), 0)
    end
end

local m = {}

function m.merge(now, row)
    local to = row.state
    check(now and now.state or "off", to)
    if now and now.state == to then
        return tarn.KEEP
    end
    row.raised, row.acked_by = now and now.raised or 0, now and now.acked_by
    if to == "on" then
        row.raised, row.acked_by = row.raised + 1, nil
    elseif to == "acknowledged" then
        row.acked_by = row.who
    end
    return row
end

m.test = {
    {
        name = "it is raised",
        merge = { nil, { state = "on" } },
        gives = { state = "on", raised = 1 },
    },
    {
        name = "somebody looks",
        merge = { { state = "on", raised = 1 }, { state = "acknowledged", who = "ann" } },
        gives = { state = "acknowledged", acked_by = "ann", raised = 1 },
    },
    {
        name = "it is over, and who looked is known",
        merge = { { state = "acknowledged", acked_by = "ann", raised = 1 }, { state = "cleared" } },
        gives = { state = "cleared", acked_by = "ann" },
    },
    {
        name = "it comes again",
        merge = { { state = "cleared", acked_by = "ann", raised = 1 }, { state = "on" } },
        gives = function(row)
            return row.state == "on" and row.raised == 2 and row.acked_by == nil
        end,
    },
    { name = "twice is once", merge = { { state = "on" }, { state = "on" } }, gives = tarn.KEEP },
    {
        name = "nothing is acknowledged before it is on",
        merge = { nil, { state = "acknowledged", who = "ann" } },
        raises = "off can't become acknowledged",
    },
    {
        name = "no other states",
        merge = { nil, { state = "exploded" } },
        raises = "there is no state exploded",
    },
}

return m
