/** How values of the database become values of the program. */
import { type CustomTypesConfig, types } from 'pg'

const INT8 = 20
const DATE = 1082

/**
 * bigint becomes a number, refused where a number cannot hold it exactly; date stays the text it
 * is, for a day has no time zone; everything else as pg has it (timestamptz to Date, bytea to
 * Buffer, numeric to text).
 */
export const parseTypes: CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (format !== 'binary') {
      if (oid === INT8) return parseInt8
      if (oid === DATE) return (text: string) => text
    }
    return types.getTypeParser(oid, format as 'text')
  },
} as CustomTypesConfig

function parseInt8(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is beyond the exact numbers`)
  return value
}
