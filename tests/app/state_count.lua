-- Numbers all that comes: a record that is taken twice, or is lost, shows.

local count = tarn.state("count")

local m = {}

function m.map(row)
    count.n = (count.n or 0) + 1
    if row.bad then
        error("it is bad")
    end
    row.n = count.n
    return row
end

return m
