--- Windows of time: which one a moment is in, and whether a value belongs to the one that is open.
--
-- Times are integers of the column's unit, sizes are in the same: for TIMESTAMP(3) an hour is
-- 3600000. Nothing here looks at a clock.
--
-- @module tarn.window

local m = {}

--- The window that a moment is in.
-- @tparam integer ts
-- @tparam integer size above 0
-- @tparam[opt=0] integer offset where windows begin: a day that begins at 6:00 has six hours
-- @treturn integer its first moment
function m.start(ts, size, offset)
    offset = offset or 0
    return (ts - offset) // size * size + offset
end

--- How a row's moment stands to the window that the table has for its key.
-- @tparam ?integer open first moment of the window that is there; nil: none yet
-- @tparam integer ts
-- @tparam integer size
-- @tparam[opt=0] integer offset
-- @treturn string "same", "next" (a newer window begins) or "late" (it belongs to one before)
-- @treturn integer first moment of the row's window
function m.place(open, ts, size, offset)
    local start = m.start(ts, size, offset)
    if open == start then
        return "same", start
    end
    return (open == nil or start > open) and "next" or "late", start
end

--- Whether so much time has passed that something may be done again: at most once a `size`.
-- @tparam ?integer last when it was done; nil: never
-- @tparam integer ts
-- @tparam integer size
-- @treturn boolean
function m.due(last, ts, size)
    return last == nil or ts - last >= size
end

return m
