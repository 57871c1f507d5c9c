// On a telephone a picture is small: a tap opens it by itself.
document.querySelectorAll("img[class^=sphx-glr-single], img[class^=sphx-glr-multi], .content figure img, .content p > img").forEach((picture) => {
  const link = document.createElement("a");
  link.href = picture.src;
  picture.replaceWith(link);
  link.append(picture);
});
