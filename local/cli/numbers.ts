import { InvalidArgumentError } from "commander";

/** @throws {InvalidArgumentError} naming the rule; commander names the option */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d+$/u.test(text) ? Number(text) : NaN;
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}`);
    return value;
  };
}

/** @throws {InvalidArgumentError} naming the rule; commander names the option */
export function decimal(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+(\.\d+)?$/u.test(text) ? Number(text) : NaN;
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`must be a number from ${min} to ${max}`);
    return value;
  };
}
