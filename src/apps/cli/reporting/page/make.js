// Data of the report.
const report = JSON.parse(document.getElementById("data").textContent);
