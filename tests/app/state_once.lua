-- Takes each id once, and numbers what it takes: one that came twice, or was dropped for one that
-- never got into the table, shows, and so does a number that is missing or there twice.

local seen = tarn.state("seen", { size = 8000 })
local count = tarn.state("count")

local m = {}

function m.map(row)
    if seen[row.id] then
        return nil
    end
    seen[row.id] = true
    count.n = (count.n or 0) + 1
    if row.bad then
        error("it is bad")
    end
    row.n = count.n
    return row
end

return m
