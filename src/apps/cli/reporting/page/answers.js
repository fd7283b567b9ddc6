// Predictions of a model: confusion matrix and most confident mistakes.

/** Returns the colour of a fraction of a row: one hue for right predictions, another for wrong ones. */
const cellColour = (share, right) => `rgba(var(--${right ? "hit" : "miss"}), ${share === 0 ? 0 : (0.08 + 0.82 * share).toFixed(3)})`;

function confusionTable(model) {
  const rows = model.confusion.map((counts, of) => {
    const total = counts.reduce((sum, count) => sum + count, 0);
    // Wrong predictions are few: the square root makes their colours visible.
    const cells = counts.map((count, answer) => {
      const share = total === 0 ? 0 : count / total, right = of === answer;
      return make("td", {class: count === 0 ? "zero" : null, style: `background: ${cellColour(right ? share : Math.sqrt(share), right)}`,
        title: `${count} of ${total} images of ${model.classes[of]} classified as ${model.classes[answer]}`}, String(count));
    });
    return make("tr", {}, make("th", {scope: "row"}, model.classes[of]), cells,
      make("td", {}, total === 0 ? "-" : `${(100 * counts[of] / total).toFixed(1)} %`));
  });
  const long = model.classes.join("").length > 60;  // names that would widen the columns are set vertically
  return make("div", {}, make("p", {class: "note"}, "Rows: true classes. Columns: predicted classes."),
    make("div", {class: "wide"}, make("table", {class: long ? "confusion upright" : "confusion"},
    make("thead", {}, make("tr", {}, make("td"), model.classes.map((name) =>
      make("th", {scope: "col", title: name}, name)), make("th", {scope: "col"}, "right"))),
    make("tbody", {}, rows))));
}

/** Draws the matrix of many classes: a dot for each pair that occurs. */
function confusionDots(model) {
  const n = model.classes.length, dots = [];
  model.confusion.forEach((counts, of) => {
    const total = counts.reduce((sum, count) => sum + count, 0);
    counts.forEach((count, answer) => {
      if (count > 0)
        dots.push(makeSvg("rect", {x: answer, y: of, width: 1, height: 1,
          fill: cellColour(of === answer ? count / total : Math.sqrt(count / total), of === answer)},
        makeSvg("title", {}, `${count} of ${total} images of ${model.classes[of]} classified as ${model.classes[answer]}`)));
    });
  });
  return makeSvg("svg", {class: "dots", viewBox: `0 0 ${n} ${n}`, role: "img",
    "aria-label": `Confusion matrix of ${n} classes: rows are true classes, columns are predicted classes`}, dots);
}

/** Creates the table of the pairs of classes that are confused most often, at most ten. */
function worstPairs(model) {
  const pairs = model.confusion.flatMap((counts, of) =>
    counts.map((count, answer) => ({of, answer, count})).filter((pair) => pair.of !== pair.answer && pair.count > 0));
  pairs.sort((a, b) => b.count - a.count);
  if (pairs.length === 0) return make("p", {}, "No image was misclassified.");
  return table(["images of", "classified as", "number"], pairs.slice(0, 10).map((pair) =>
    [model.classes[pair.of], model.classes[pair.answer], String(pair.count)]));
}

/** Creates the list of mistakes; `look` is called with the index of an image whose maps are requested. */
function mistakesGallery(model, look) {
  const mapped = new Map(model.maps.map((image, i) => [image.index, i]));
  return make("ul", {class: "gallery"}, model.mistakes.map((mistake) => make("li", {},
    make("img", {src: mistake.image, alt: `Test image ${mistake.index}, ${model.classes[mistake.label]}`}),
    make("div", {}, make("strong", {}, model.classes[mistake.answer]), ` ${shown(mistake.share, true, 1)}`),
    make("div", {class: "pale"}, `is ${model.classes[mistake.label]} ${shown(mistake.of_label, true, 1)}`),
    make("div", {class: "pale"}, `image ${mistake.index}`),
    mapped.has(mistake.index) ? make("button", {onclick: () => look(mapped.get(mistake.index))}, "where it looks") : null)));
}

function answersSection(model, look) {
  const right = make("p", {}, `${shown(model.accuracy, true)} of ${model.images.toLocaleString("en")} test images are classified correctly; the loss is ${shown(model.loss)}.`);
  return section("What it gets wrong", right,
    model.classes.length <= 20 ? confusionTable(model) : confusionDots(model),
    make("details", {}, make("summary", {}, "Pairs that are confused most often"), worstPairs(model)),
    model.mistakes.length > 0 ? [make("h3", {style: "margin: 1.5rem 0 .6rem"}, "The most confident mistakes"), mistakesGallery(model, look)] : null);
}
