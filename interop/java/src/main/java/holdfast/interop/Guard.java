// The counter outside the lock by which overlaps are seen.

package holdfast.interop;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Guard is a file that all processes of a test have in their memory: words of eight
 * bytes, changed by atomic additions. guard_test.go has the other side.
 */
final class Guard {
    private static final VarHandle WORDS = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private static final int INSIDE = 0;
    private static final int LAST = 1;
    private static final int GRANTS = 5;
    private static final int OVERLAPS = 6;
    private static final int CROSSINGS = 7;
    private static final int SIZE = 8;

    private static final long JAVA = 2;

    private final MappedByteBuffer memory;

    Guard(String path) throws IOException {
        try (FileChannel file = FileChannel.open(Path.of(path), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            memory = file.map(FileChannel.MapMode.READ_WRITE, 0, SIZE * 8);
        }
    }

    /** Notes that somebody of that weight is in, beside whom there may be room. */
    void enter(long weight, long room) {
        if (add(INSIDE, weight) > room) {
            add(OVERLAPS, 1);
        }
        add(GRANTS, 1);
        if ((long) WORDS.getAndSet(memory, LAST * 8, JAVA) != JAVA) {
            add(CROSSINGS, 1);
        }
    }

    /** Notes that somebody of that weight goes. */
    void leave(long weight) {
        add(INSIDE, -weight);
    }

    private long add(int word, long n) {
        return (long) WORDS.getAndAdd(memory, word * 8, n);
    }
}
