// Called once in each runtime, before the script: refuses calls of functions of the engine that nothing could interrupt.
(ofArrays, mostElements, ofStrings, mostComparisons) => {
  const { apply, defineProperty } = { apply: Reflect.apply, defineProperty: Object.defineProperty };
  const bound = (prototype, names, check) => {
    for (const name of names) {
      const original = prototype[name];
      const { [name]: value } = {
        [name](...given) {
          check(this, given);
          return apply(original, this, given);
        },
      };
      defineProperty(prototype, name, { value, writable: true, enumerable: false, configurable: true });
    }
  };
  bound(Array.prototype, ofArrays, (array) => {
    if (array != null && array.length > mostElements) {
      throw new RangeError(`expected an array of at most ${mostElements} elements, found one of ${array.length}`);
    }
  });
  bound(String.prototype, ofStrings, (text, [sought]) => {
    if (typeof sought === 'string' && text != null && text.length * sought.length > mostComparisons) {
      throw new RangeError(
        `expected a shorter text to look for: ${sought.length} characters in ${text.length} may take too long`,
      );
    }
  });
};
