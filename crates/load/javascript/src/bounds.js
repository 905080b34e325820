// Called once in each runtime, before the script: refuses calls of functions of the engine that nothing could interrupt.
(mostElements, mostComparisons) => {
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
  bound(Array.prototype, [
    'concat', 'copyWithin', 'every', 'filter', 'flat', 'flatMap', 'forEach', 'includes', 'indexOf', 'join', 'lastIndexOf',
    'map', 'reduce', 'reduceRight', 'reverse', 'shift', 'slice', 'some', 'sort', 'splice', 'toLocaleString', 'unshift',
  ], (array) => {
    if (array != null && array.length > mostElements) {
      throw new RangeError(`expected an array of at most ${mostElements} elements, found one of ${array.length}`);
    }
  });
  bound(String.prototype, ['includes', 'indexOf', 'lastIndexOf', 'replace', 'replaceAll', 'split'], (text, [sought]) => {
    if (typeof sought === 'string' && text != null && text.length * sought.length > mostComparisons) {
      throw new RangeError(
        `expected a shorter text to look for: ${sought.length} characters in ${text.length} may take too long`,
      );
    }
  });
};
