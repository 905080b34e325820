(function (root, factory) {
  if (typeof define === 'function' && define.amd) {
    define(['exports'], factory);
  } else if (typeof exports === 'object' && typeof module !== 'undefined') {
    factory(exports);
  } else {
    factory((root.wrapped = {}));
  }
})(typeof self !== 'undefined' ? self : this, function (exports) {
  exports.double = function (number) { return 2 * number; };
});
