// What the report is about.
const report = JSON.parse(document.getElementById("data").textContent);
