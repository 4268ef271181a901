--[[ ungrain for darktable: "Denoise with ungrain" among the actions of selected images (lighttable).

Each selected image is exported as a 16-bit TIFF, denoised by the program, and imported beside the original, in its group.
Raw files that are not developed yet: `ungrain IMG.CR2` writes a DNG that darktable opens, which is better.

Copy this file to ~/.config/darktable/lua/ and add the line `require "ungrain"` to ~/.config/darktable/luarc.
The program must be on the PATH; its options are in the preferences, Lua options.
]]
local dt = require "darktable"

dt.configuration.check_version(..., {5, 0, 0}, {6, 0, 0}, {7, 0, 0}, {8, 0, 0}, {9, 0, 0})

dt.preferences.register("ungrain", "program", "string", "ungrain: program", "the program, or its path", "ungrain")
dt.preferences.register("ungrain", "options", "string", "ungrain: options", "such as --strength 0.8 --keep-grain 0.2", "")

-- A word that a POSIX shell takes as it is.
local function quoted(text)
  return "'" .. string.gsub(text, "'", "'\\''") .. "'"
end

-- Options as words; characters that mean something to a shell are refused.
local function checked_options(options)
  if string.find(options, "[^%w%s%-%._=,]") then
    return nil
  end
  return options
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then
    file:close()
    return true
  end
  return false
end

-- A name beside the original that is not taken.
local function result_name(image)
  local base = image.path .. "/" .. string.gsub(image.filename, "%.[^.]*$", "")
  local name = base .. ".ungrain.tif"
  local number = 1
  while exists(name) do
    name = base .. ".ungrain-" .. number .. ".tif"
    number = number + 1
  end
  return name
end

local function denoise(image, options)
  local exported = os.tmpname() .. ".tif"
  local format = dt.new_format("tiff")
  format.bpp = 16
  format:write_image(image, exported, false)
  local result = result_name(image)
  local command = quoted(dt.preferences.read("ungrain", "program", "string")) .. " " .. quoted(exported) .. " -q -o " .. quoted(result) ..
    " " .. options
  local done = dt.control.execute(command)
  os.remove(exported)
  if done ~= 0 or not exists(result) then
    dt.print("ungrain: " .. image.filename .. " could not be denoised")
    return
  end
  local imported = dt.database.import(result)
  imported:group_with(image.group_leader)
end

local function denoise_selected()
  local options = checked_options(dt.preferences.read("ungrain", "options", "string"))
  if not options then
    dt.print("ungrain: the options have characters that they cannot have")
    return
  end
  local images = dt.gui.action_images
  local job = dt.gui.create_job("ungrain", true)
  for number, image in ipairs(images) do
    denoise(image, options)
    job.percent = number / #images
  end
  job.valid = false
end

dt.gui.libs.image.register_action("ungrain", "Denoise with ungrain", denoise_selected, "exports, denoises, imports beside the original")
