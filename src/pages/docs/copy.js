// Copy buttons for code blocks.

// Copies a text. If this is not possible, the text is selected. Returns whether the text was copied.
async function copy(block, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS there is no clipboard API: select the text and let the browser copy it.
    const selection = getSelection();
    selection.selectAllChildren(block);
    const done = document.execCommand("copy");
    if (done) selection.removeAllRanges();
    return done;
  }
}

// Adds a button to a block on the page. `text` is the text to copy, if it differs from the block's text.
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
