export interface Shape { sides: number; name?: string }
export type Sides = Shape['sides'];
export function describe<T extends Shape>(shape: T): string {
  return `${shape.name ?? 'shape'}-${shape.sides as Sides}`;
}
