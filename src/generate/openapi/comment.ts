import type {
  DescEnum,
  DescEnumValue,
  DescField,
  DescFile,
  DescMessage,
  DescMethod,
  DescService,
} from '@bufbuild/protobuf';
import { getComments, getPackageComments } from '@bufbuild/protoplugin';

type Commented = DescMessage | DescField | DescEnum | DescEnumValue | DescService | DescMethod;

/** Longer sentences are cut at the first colon or semicolon in summaries. */
const MAX_SUMMARY_CHARACTERS = 100;

/** The comment above a declaration as CommonMark; '' when there is none. */
export function commentOf(desc: Commented): string {
  return unwrap(getComments(desc).leading);
}

/** The comment above a file's package. */
export function packageComment(file: DescFile): string {
  return unwrap(getPackageComments(file).leading);
}

/** The first sentence of a comment, without its full stop. */
export function summaryOf(comment: string): string {
  const [paragraph = ''] = comment.split('\n');
  const sentence = paragraph.split(/\.(?:\s|$)/, 1)[0] ?? '';
  return sentence.length > MAX_SUMMARY_CHARACTERS ? (sentence.split(/[:;] /, 1)[0] ?? '') : sentence;
}

/** Joins the lines of each paragraph; lines of a list or a code block stay apart. */
function unwrap(comment: string | undefined): string {
  const lines = (comment ?? '').split('\n').map((line) => line.replace(/^ /, '').trimEnd());
  let text = '';
  for (const line of lines) {
    const isApart = line === '' || text === '' || text.endsWith('\n') || /^(?:[-*#|]|```| {2,})/.test(line);
    text += isApart ? `${text === '' || text.endsWith('\n\n') ? '' : '\n'}${line}` : ` ${line}`;
  }
  return text.trim();
}
