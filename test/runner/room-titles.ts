/** What AVA calls the files of rooms (rooms.ts) and the tests in them. */
import { join } from 'node:path'

/** Below this folder, without a source next to it. */
export const ROOMS = join('dist', 'test', 'rooms')

/** The title of the test that runs the members of a room. */
export const ROOM_TITLE = 'the members of the room run'

/** The file and the title of a test of a room. */
export function memberOf(title: string): { file: string; title: string } | undefined {
  const [, file, own] = /(dist\/test\/\S+\.test\.js): (.*)$/s.exec(title) ?? []
  return file === undefined || own === undefined ? undefined : { file, title: own }
}

export function titleIn(file: string, title: string): string {
  return `${file}: ${title}`
}
