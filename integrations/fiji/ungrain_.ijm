// ungrain in Fiji and ImageJ: denoises the active image or stack through the program `ungrain`, and opens the result.
// Copy this file to the folder plugins/ of Fiji.app (or ImageJ), restart it: Plugins > ungrain. From other macros:
//   runMacro("/path/to/ungrain_.ijm", "--method nlm --sigma 12");
//   runMacro("/path/to/ungrain_.ijm", "--volume");
// The program must be on the PATH, or be named in Edit > Options > ungrain (the preference "ungrain.program").

macro "ungrain" {
  if (nImages == 0) exit("ungrain: there is no image");
  program = call("ij.Prefs.get", "ungrain.program", "ungrain");
  options = getArgument();
  if (options == "") options = askedOptions(program);
  denoise(call("ij.Prefs.get", "ungrain.program", program), options);
}

// Asks in a dialog; what was chosen is kept for the next time.
function askedOptions(program) {
  methods = newArray("bm3d", "ridge", "nlm", "bilateral", "median");
  kinds = newArray("each image by itself", "a volume");
  Dialog.create("ungrain");
  Dialog.addString("Program", program, 30);
  Dialog.addChoice("Method (images)", methods, call("ij.Prefs.get", "ungrain.method", "bm3d"));
  Dialog.addString("Sigma (0 to 255; auto: measured)", "auto");
  Dialog.addNumber("Strength", 1);
  if (nSlices > 1) Dialog.addChoice("The stack is", kinds, call("ij.Prefs.get", "ungrain.kind", kinds[0]));
  Dialog.addString("Other options", "", 30);
  Dialog.show();
  call("ij.Prefs.set", "ungrain.program", Dialog.getString());
  method = Dialog.getChoice();
  call("ij.Prefs.set", "ungrain.method", method);
  sigma = Dialog.getString();
  strength = Dialog.getNumber();
  kind = kinds[0];
  if (nSlices > 1) {
    kind = Dialog.getChoice();
    call("ij.Prefs.set", "ungrain.kind", kind);
  }
  options = "--strength " + strength;
  if (sigma != "auto" && method != "median") options = options + " --sigma " + sigma;
  if (kind == kinds[1]) options = options + " --volume";
  else options = options + " --method " + method;
  return options + " " + Dialog.getString();
}

// exec() takes words one by one, never an array of them: a macro of one line has them all.
function execWords(words) {
  line = "return exec(";
  for (i = 0; i < words.length; i++) {
    word = replace(replace(words[i], "\\\\", "\\\\\\\\"), "\"", "\\\\\"");
    line = line + "\"" + word + "\"";
    if (i < words.length - 1) line = line + ", ";
  }
  return eval(line + ");");
}

// Through two TIFF files in the temporary folder, which are removed.
function denoise(program, options) {
  title = getTitle();
  stamp = "" + getTime() + "-" + round(random * 1e9);
  before = getDirectory("temp") + "ungrain-" + stamp + "-in.tif";
  after = getDirectory("temp") + "ungrain-" + stamp + "-out.tif";
  // A copy, because saving names a window after its file.
  setBatchMode(true);
  run("Duplicate...", "title=[ungrain copy] duplicate");
  saveAs("Tiff", before);
  close();
  setBatchMode(false);
  files = newArray(program, before, "-o", after);
  words = split(options, " ");
  command = Array.concat(files, words);
  said = execWords(command);
  gone = File.delete(before);
  // exec() keeps what the program says of errors to itself.
  if (!File.exists(after)) exit("ungrain made no result; in a terminal it says why: " + program + " FILE " + options);
  open(after);
  gone = File.delete(after);
  rename(title + " denoised");
  if (said != "") print("ungrain: " + said);
}
