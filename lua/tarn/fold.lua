--- Folds of one column: what becomes of the value that is there when another one comes.
--
-- Each takes `now` and `new`, either may be nil (NULL), and gives the value that is true then. They
-- fit a `merge` that is a table of columns, or are called in one that is a function:
--
--     m.merge = { temp_max = tarn.fold.max, temp_last = tarn.fold.last }
--
-- A fold sees rows in the order of their arrival and needs no laws; these happen to have them.
--
-- @module tarn.fold

local m = {}

--- The larger one.
-- @tparam ?number now
-- @tparam ?number new
-- @treturn ?number
function m.max(now, new)
    if now == nil or new == nil then
        return now == nil and new or now
    end
    return new > now and new or now
end

--- The smaller one.
-- @tparam ?number now
-- @tparam ?number new
-- @treturn ?number
function m.min(now, new)
    if now == nil or new == nil then
        return now == nil and new or now
    end
    return new < now and new or now
end

--- The newest one that is not NULL.
-- @param now
-- @param new
-- @return one of them
function m.last(now, new)
    if new == nil then
        return now
    end
    return new
end

--- The oldest one that is not NULL.
-- @param now
-- @param new
-- @return one of them
function m.first(now, new)
    if now == nil then
        return new
    end
    return now
end

--- Their sum; integers stay exact and wrap never: what doesn't fit is an error of the column.
-- @tparam ?number now
-- @tparam ?number new
-- @treturn ?number
function m.sum(now, new)
    if now == nil or new == nil then
        return now == nil and new or now
    end
    local sum = now + new
    if math.type(sum) == "integer" and (now < 0) == (new < 0) and (sum < 0) ~= (now < 0) then
        error("the sum of " .. now .. " and " .. new .. " doesn't fit 64 bits", 2)
    end
    return sum
end

--- How many rows came: one more than `now`, whatever `new` is.
-- @tparam ?integer now
-- @treturn integer
function m.count(now)
    return (now or 0) + 1
end

--- The mean, when `count` values have made it so far.
--
--     local mean, count = now and now.temp_mean, now and now.temp_count
--     row.temp_mean, row.temp_count = tarn.fold.mean(mean, row.temp, count)
--
-- @tparam ?number now the mean so far
-- @tparam ?number new the value that comes; nil (NULL) counts for nothing
-- @tparam ?integer count how many are in it
-- @treturn ?number the mean
-- @treturn integer how many are in it then
function m.mean(now, new, count)
    count = now and count or 0
    if new == nil then
        return now, count
    end
    count = count + 1
    return now and now + (new - now) / count or new + 0.0, count
end

--- The union of two sets, written as one text of words: "door,heat".
-- @tparam ?string now
-- @tparam ?string new
-- @tparam[opt=","] string separator
-- @treturn ?string each word once, in byte order
function m.union(now, new, separator)
    if now == nil and new == nil then
        return nil
    end
    separator = separator or ","
    local seen, words = {}, {}
    for _, text in ipairs({ now or "", new or "" }) do
        local from = 1
        while from <= #text do
            local at = text:find(separator, from, true) or #text + 1
            local word = text:sub(from, at - 1)
            if word ~= "" and not seen[word] then
                seen[word] = true
                words[#words + 1] = word
            end
            from = at + #separator
        end
    end
    table.sort(words)
    return table.concat(words, separator)
end

return m
