--- Dead bands: when a value has moved far enough to be told.
--
-- What was told last is a column of the row (`temp_told`), set in `merge` and shown by `announce`:
-- so it is durable, and a slow ramp is told as soon as it has left the band around what was told.
-- (A filter that compares each value with the one before never tells a ramp of small steps.)
--
--     row.temp_told = tarn.deadband(now and now.temp_told, row.temp, 0.5)
--
-- @module tarn.deadband

local m = {}

--- What is to be told now: `value` when it is at least `band` away from `told`, else `told`.
-- @tparam ?number told what was told last; nil: nothing yet
-- @tparam ?number value what is true now; nil (NULL) is told at once
-- @tparam number band how far it may move untold, in the value's unit
-- @treturn ?number
function m.absolute(told, value, band)
    if told == nil or value == nil or value ~= value then
        return value
    end
    local moved = value - told
    if moved < 0 then
        moved = -moved
    end
    -- told may be NaN: no distance from it is small
    return moved < band and told or value
end

--- The same with a band that is a part of what was told: 0.01 is one per cent.
-- @tparam ?number told
-- @tparam ?number value
-- @tparam number part of |told|
-- @treturn ?number
function m.relative(told, value, part)
    local size = told and (told < 0 and -told or told) or 0
    return m.absolute(told, value, part * size)
end

--- A switch with two thresholds: on above `high`, off below `low`, in between as it was.
-- @tparam ?boolean was nil: off
-- @tparam ?number value nil (NULL): as it was
-- @tparam number low
-- @tparam number high at least `low`
-- @treturn boolean
function m.hysteresis(was, value, low, high)
    if value == nil then
        return was or false
    end
    if was then
        return value >= low
    end
    return value > high
end

return setmetatable(m, {
    __call = function(_, told, value, band)
        return m.absolute(told, value, band)
    end,
})
