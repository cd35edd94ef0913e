-- Numbers all that comes: a record that is taken twice, or is lost, shows.

local count = tarn.state("count")

local m = {}

function m.map(row)
    count.n = (count.n or 0) + 1
    if not row.n and row.bad then -- a row of the table has an n, and nothing else
        error("it is bad")
    end
    row.n = count.n
    return row
end

return m
