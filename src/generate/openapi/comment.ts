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

/** The comment above a declaration as CommonMark; '' when there is none. */
export function commentOf(desc: Commented): string {
  return unwrap(getComments(desc).leading);
}

/** The comment above a file's package. */
export function packageComment(file: DescFile): string {
  return unwrap(getPackageComments(file).leading);
}

/** The first sentence of a comment, without its full stop: the title of what it is about. */
export function summaryOf(comment: string): string {
  const [paragraph = ''] = comment.split('\n');
  return paragraph.split(/\.(?:\s|$)/, 1)[0] ?? '';
}

/** The comment without its summary, if the summary is a complete sentence. */
export function withoutSummary(comment: string, summary: string): string {
  const sentence = `${summary}.`;
  return comment.startsWith(sentence) ? comment.slice(sentence.length).trimStart() : comment;
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
