// On a telephone a picture is small: a tap opens it by itself.
document.querySelectorAll("img[class^=sphx-glr-single], img[class^=sphx-glr-multi], .content figure img, .content p > img").forEach((picture) => {
  const link = document.createElement("a");
  link.href = picture.src;
  picture.replaceWith(link);
  link.append(picture);
});
// On a telephone a table scrolls in its box: a short cell, such as "84.2 ± 8.6", stays on one line, and a longer one is not a column of single words.
document.querySelectorAll("table.docutils td").forEach((cell) => {
  const { length } = cell.textContent;
  if (length < 15) cell.style.whiteSpace = "nowrap";
  else cell.style.minWidth = `${Math.min(7, length / 4)}em`;
});
