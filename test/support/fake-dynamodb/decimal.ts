import { validationError } from "./errors.ts";

/**
 * An exact decimal: `coefficient · 10^exponent`. Always in lowest terms (the coefficient of a non-zero number never ends
 * in 0), so two decimals are equal exactly when both fields are.
 */
export interface Decimal {
  readonly coefficient: bigint;
  readonly exponent: number;
}

const NUMBER = /^(?<sign>[+-]?)(?:(?<whole>\d+)(?:\.(?<fraction>\d*))?|\.(?<bare>\d+))(?:[eE](?<exponent>[+-]?\d+))?$/;
const MAX_DIGITS = 38;
const MAX_MAGNITUDE = 125;
const MIN_MAGNITUDE = -130;

/** Reads a number as DynamoDB accepts it; ValidationException for anything else, also beyond 38 digits or out of range. */
export function parseDecimal(text: string): Decimal {
  const groups = NUMBER.exec(text)?.groups;
  if (groups === undefined) {
    const detail = text === "" ? "" : `: ${text}`;
    throw validationError(`The parameter cannot be converted to a numeric value${detail}`);
  }
  const fraction = groups["fraction"] ?? groups["bare"] ?? "";
  const digits = (groups["whole"] ?? "") + fraction;
  const coefficient = BigInt(digits) * (groups["sign"] === "-" ? -1n : 1n);
  return storable(reduced(coefficient, Number(groups["exponent"] ?? "0") - fraction.length));
}

/** The canonical text: plain notation without superfluous zeros, as DynamoDB returns numbers. */
export function formatDecimal({ coefficient, exponent }: Decimal): string {
  const sign = coefficient < 0n ? "-" : "";
  const digits = digitsOf(coefficient);
  if (exponent >= 0) return sign + digits + "0".repeat(exponent);
  const padded = digits.padStart(1 - exponent, "0");
  return `${sign}${padded.slice(0, exponent)}.${padded.slice(exponent)}`;
}

export function compareDecimals(a: Decimal, b: Decimal): number {
  const exponent = Math.min(a.exponent, b.exponent);
  const left = scaled(a, exponent);
  const right = scaled(b, exponent);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The exact sum; ValidationException when it needs more than 38 digits or leaves the range. */
export function addDecimals(a: Decimal, b: Decimal): Decimal {
  const exponent = Math.min(a.exponent, b.exponent);
  return storable(reduced(scaled(a, exponent) + scaled(b, exponent), exponent));
}

export function negated({ coefficient, exponent }: Decimal): Decimal {
  return { coefficient: -coefficient, exponent };
}

/** Significant digits, which is what a number's stored size depends on. */
export function digitCount({ coefficient }: Decimal): number {
  return coefficient === 0n ? 0 : digitsOf(coefficient).length;
}

function digitsOf(coefficient: bigint): string {
  return (coefficient < 0n ? -coefficient : coefficient).toString();
}

function scaled(value: Decimal, exponent: number): bigint {
  return value.coefficient * 10n ** BigInt(value.exponent - exponent);
}

function reduced(coefficient: bigint, exponent: number): Decimal {
  if (coefficient === 0n) return { coefficient, exponent: 0 };
  const text = coefficient.toString();
  const significant = text.replace(/0+$/, "");
  return { coefficient: BigInt(significant), exponent: exponent + text.length - significant.length };
}

function storable(value: Decimal): Decimal {
  const digits = digitCount(value);
  if (digits === 0) return value;
  const magnitude = digits - 1 + value.exponent;
  if (magnitude > MAX_MAGNITUDE) {
    throw validationError("Number overflow. Attempting to store a number with magnitude larger than supported range");
  }
  if (magnitude < MIN_MAGNITUDE) {
    throw validationError("Number underflow. Attempting to store a number with magnitude smaller than supported range");
  }
  if (digits > MAX_DIGITS) {
    throw validationError("Attempting to store more than 38 significant digits in a Number");
  }
  return value;
}
