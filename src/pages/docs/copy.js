// Copy buttons of blocks of code.

// Returns whether the text was copied; otherwise it is selected.
async function copy(block, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS there is no clipboard to write to: select the text and let the browser copy it.
    const selection = getSelection();
    selection.selectAllChildren(block);
    const done = document.execCommand("copy");
    if (done) selection.removeAllRanges();
    return done;
  }
}

// Gives a block in the page its button. `text` is what it copies, if that is not what the block shows.
function addCopyButton(block, text = () => block.textContent) {
  const frame = document.createElement("div");
  frame.className = "copyable";
  block.replaceWith(frame);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy: " + block.getAttribute("aria-label"));
  button.addEventListener("click", async () => {
    button.textContent = (await copy(block, text())) ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  frame.append(block, button);
  return frame;
}

for (const block of document.querySelectorAll("pre")) addCopyButton(block);
