/** Prints the table of bench/capacity/model.ts from inputs.json, or from the JSON file that is named. */
import { readFileSync } from 'node:fs'
import { type CapacityInputs, capacityTable } from './model.js'

const named = process.argv[2]
const file = named ?? new URL('../../../bench/capacity/inputs.json', import.meta.url)
console.log(capacityTable(JSON.parse(readFileSync(file, 'utf8')) as CapacityInputs))
