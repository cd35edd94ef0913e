--- The usual policies of uploads, and how they are put together.
--
--     local upload = require("tarn.upload")
--     return {
--         upload = upload.urgent(upload.all(
--             upload.window("22:00", "05:00"),
--             upload.budget({ bytes = 50e6, requests = 2000 }),
--             upload.tables("plant.alarms", "plant.levels")
--         )),
--     }
--
-- A policy is a function of the state that a script's `upload` gets (`tarn help upload`); it looks
-- at nothing else, so what it says depends on the state alone. Where nothing is pending each of
-- them waits. Times of day are those of the box's own clock; while that isn't set (`state.clock` is
-- "unset") a window stays shut, and a budget is of no day: what was spent stays spent.
--
-- @module tarn.upload

local m = {}

local DAY_S = 86400
local SPANS = { hour = 3600, day = DAY_S, month = DAY_S }
local UNITS = { [""] = 1, K = 1024, M = 1024 ^ 2, G = 1024 ^ 3, T = 1024 ^ 4 }

--- Seconds since midnight, on the box's wall.
local function second_of_day(state)
    return state.local_ms // 1000 % DAY_S
end

--- @treturn ?table a plan; nil: it waits
-- @treturn ?integer for so many seconds at most; nil: until something happens
local function read(answer)
    if answer == "now" then
        return {}
    end
    if answer == "wait" then
        return nil, nil
    end
    if answer.wait then
        return nil, answer.wait
    end
    return answer
end

local function wait_for(seconds)
    return seconds and { wait = seconds } or "wait"
end

--- Nothing of a plan but what it says.
local function answer_of(plan)
    return next(plan) == nil and "now" or plan
end

local function bytes_of(rate)
    local number, unit = rate:upper():match("^(%d+)%s*([KMGT]?)I?B?/S$")
    return number and number * UNITS[unit] or error("no rate: " .. rate, 0)
end

--- At once, whatever is pending.
-- @treturn function a policy
function m.now()
    return function(state)
        return state.pending.count == 0 and "wait" or "now"
    end
end

--- Every so often: what was committed waits so long at the most.
-- @tparam number minutes
-- @treturn function a policy
function m.every(minutes)
    local seconds = math.max(1, math.ceil(minutes * 60))
    return function(state)
        if state.pending.count == 0 then
            return "wait"
        end
        local left = seconds - state.pending.age_s
        return left <= 0 and "now" or { wait = left }
    end
end

--- When it is worth a connection: so many bytes are pending, or they are so old.
-- @tparam integer bytes
-- @tparam number minutes
-- @treturn function a policy
function m.worth(bytes, minutes)
    local aged = m.every(minutes)
    return function(state)
        local worth_it = state.pending.count > 0 and state.pending.bytes >= bytes
        return worth_it and "now" or aged(state)
    end
end

local function minute_of(text)
    local hour, minute = text:match("^(%d%d?):(%d%d)$")
    hour, minute = tonumber(hour), tonumber(minute)
    if not hour or hour > 24 or minute > 59 or hour * 60 + minute > 1440 then
        error(("no time of day: '%s'; want one like '22:00'"):format(text), 3)
    end
    return hour * 60 + minute
end

--- Between two times of day, by the box's own clock.
-- @tparam string from "22:00"
-- @tparam string to "05:00": on the next day where it is the smaller one
-- @treturn function a policy
-- @raise what is no time of day
function m.window(from, to)
    local first, last = minute_of(from) * 60, minute_of(to) * 60
    local size = (last - first) % DAY_S
    size = size == 0 and DAY_S or size
    return function(state)
        if state.pending.count == 0 or state.clock == "unset" then
            return "wait"
        end
        local since = (second_of_day(state) - first) % DAY_S
        return since < size and "now" or { wait = DAY_S - since }
    end
end

--- So much in an hour, a day or a month, as `spent` counts it. It ends in front of the file that
-- would come after the last byte, so it is passed by a file at the most; what is begun goes on when
-- there is a budget again.
-- @tparam table limits bytes and requests, or one of them; per ("day", or "hour", "month")
-- @treturn function a policy
-- @raise a span that there isn't, or no limit
function m.budget(limits)
    local per = limits.per or "day"
    local span = SPANS[per] or error("a budget is per hour, day or month", 2)
    if not (limits.bytes or limits.requests) then
        error("a budget has bytes or requests", 2)
    end
    return function(state)
        local spent, plan = state.spent[per], {}
        if state.pending.count == 0 then
            return "wait"
        end
        for _, what in ipairs({ "bytes", "requests" }) do
            local left = limits[what] and limits[what] - spent[what]
            if left and left < 1 then
                return { wait = span - second_of_day(state) % span }
            end
            plan[what] = left and left // 1
        end
        return plan
    end
end

--- Only on a link that is there, and isn't metered (`metered` of `tarn help config`).
-- @treturn function a policy
function m.unmetered()
    return function(state)
        local free = state.link.up and not state.link.metered
        return free and state.pending.count > 0 and "now" or "wait"
    end
end

--- Where the link is metered one policy decides, else another one.
-- @tparam function metered a policy
-- @tparam[opt=now] function free a policy
-- @treturn function a policy
function m.by_link(metered, free)
    free = free or m.now()
    return function(state)
        if not state.link.up then
            return "wait"
        end
        return (state.link.metered and metered or free)(state)
    end
end

--- No faster.
-- @tparam string rate "64K/s"
-- @treturn function a policy
-- @raise what is no rate
function m.rate(rate)
    bytes_of(rate)
    return function(state)
        return state.pending.count == 0 and "wait" or { rate = rate }
    end
end

--- These tables first, in this order; others behind them. What isn't pending is left out.
-- @tparam string ... "plant.alarms"
-- @treturn function a policy
function m.tables(...)
    local wanted = { ... }
    return function(state)
        local there, order = {}, {}
        for _, name in ipairs(state.tables) do
            there[name] = true
        end
        for _, name in ipairs(wanted) do
            if there[name] then
                order[#order + 1] = name
            end
        end
        return state.pending.count == 0 and "wait" or { tables = order }
    end
end

local function least(a, b)
    return a and b and math.min(a, b) or a or b
end

local function slower(a, b)
    return a and b and (bytes_of(a) <= bytes_of(b) and a or b) or a or b
end

--- What all of them let through: each has to say that it's time, and the tightest limit holds. Of
-- several orders of tables the first one counts.
-- @tparam function ... policies
-- @treturn function a policy
function m.all(...)
    local policies = { ... }
    return function(state)
        local all, waits, open, longest = {}, false, false, 0
        for _, policy in ipairs(policies) do
            local plan, seconds = read(policy(state))
            if plan then
                all.through = least(all.through, plan.through)
                all.bytes = least(all.bytes, plan.bytes)
                all.requests = least(all.requests, plan.requests)
                all.rate = slower(all.rate, plan.rate)
                all.tables = all.tables or plan.tables
            else
                waits, open = true, open or not seconds
                longest = math.max(longest, seconds or 0)
            end
        end
        if waits then
            return wait_for(not open and longest)
        end
        return answer_of(all)
    end
end

--- The first of them that doesn't wait.
-- @tparam function ... policies
-- @treturn function a policy
function m.any(...)
    local policies = { ... }
    return function(state)
        local shortest
        for _, policy in ipairs(policies) do
            local plan, seconds = read(policy(state))
            if plan then
                return answer_of(plan)
            end
            shortest = least(shortest, seconds)
        end
        return wait_for(shortest)
    end
end

--- A disk that fills up goes before everything: what waits is held on it.
-- @tparam function policy what decides otherwise
-- @tparam[opt=2] number part of the reserve: less is left of the disk
-- @treturn function a policy
function m.urgent(policy, part)
    return function(state)
        local full = state.disk.free < (part or 2) * state.disk.reserve
        if full and state.link.up and state.pending.count > 0 then
            return "now"
        end
        return policy(state)
    end
end

return m
