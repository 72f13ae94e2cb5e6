for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    const status = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      status.textContent = button.dataset.done;
    } catch {
      getSelection().selectAllChildren(source);
      status.textContent = "The browser blocked copying. The text is selected: press Ctrl+C or ⌘C.";
    }
  });
}
