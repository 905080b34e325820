interface Shape { sides: number; name?: string }
export type Sides = Shape['sides'];
function describe<T extends Shape>(shape: T): string {
  return `${shape.name ?? 'shape'}-${shape.sides as Sides}`;
}
export { Shape, describe };
