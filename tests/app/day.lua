-- Counts the rows of a key: one that is lost, or there twice, is seen in the count.

local m = {}

function m.merge(now, row)
    row.n = 1 + (now and now.n or 0)
    return row
end

m.test = {
    { name = "the first one", merge = { nil, { n = 7 } }, gives = { n = 1 } },
    { name = "another one", merge = { { n = 3 }, { n = 7 } }, gives = { n = 4 } },
}

return m
